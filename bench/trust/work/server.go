// Go's own server on one CPU: /?n=N answers with N rows as JSON, and with MORE_ROUNDS more.
package main

import (
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"strconv"
)

type row struct {
	ID   int      `json:"id"`
	Name string   `json:"name"`
	Tags []string `json:"tags"`
}

func main() {
	runtime.GOMAXPROCS(1)
	more, _ := strconv.Atoi(os.Getenv("MORE_ROUNDS"))
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		count, _ := strconv.Atoi(r.URL.Query().Get("n"))
		rows := make([]row, 0)
		for i := 0; i < count+more; i++ {
			rows = append(rows, row{i, "n" + strconv.Itoa(i), []string{"a" + strconv.Itoa(i), "b" + strconv.Itoa(i)}})
		}
		json.NewEncoder(w).Encode(rows)
	})
	if err := http.ListenAndServe("127.0.0.1:"+os.Args[1], nil); err != nil {
		panic(err)
	}
}
