// A web service whose requests take CPU time: WORK times 50,000 steps of a hash.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
)

func hash(steps int) uint64 {
	sum := uint64(14695981039346656037)
	for step := 0; step < steps; step++ {
		sum = (sum ^ uint64(step&255)) * 1099511628211
	}
	return sum
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: server PORT")
	}
	work, err := strconv.Atoi(os.Getenv("WORK"))
	if err != nil {
		work = 1
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(answer, "%x\n", hash(work*50000))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
