// A server of Go's own net/http: / answers, /spin?ns=N keeps the CPU busy for N nanoseconds first.
package main

import (
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"
)

func main() {
	runtime.GOMAXPROCS(1)
	answer := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "Hello, World!") }
	http.HandleFunc("/", answer)
	http.HandleFunc("/spin", func(w http.ResponseWriter, r *http.Request) {
		ns, _ := strconv.Atoi(r.URL.Query().Get("ns"))
		for begin := time.Now(); time.Since(begin) < time.Duration(ns); {
		}
		answer(w, r)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		panic(err)
	}
}
