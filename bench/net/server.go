// A plain Go server.
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok\n") })
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
