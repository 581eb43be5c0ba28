// A service in front of MariaDB, for bench/probe/run: /order does work of its own and one query, /health the work alone.
package main

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	_ "github.com/go-sql-driver/mysql"
)

// work hashes so many times.
func work(rounds int) byte {
	sum := sha256.Sum256([]byte("tare"))
	for i := 0; i < rounds; i++ {
		sum = sha256.Sum256(sum[:])
	}
	return sum[0]
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: service LISTEN DSN ROUNDS QUERY")
	}
	rounds, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	db, err := sql.Open("mysql", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, work(rounds))
	})
	http.HandleFunc("/order", func(w http.ResponseWriter, r *http.Request) {
		var found int
		if err := db.QueryRowContext(r.Context(), os.Args[4]).Scan(&found); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, work(rounds), found)
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
