// A server that holds one lock for each request: bench/why/lock builds it.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

type account struct {
	mutex sync.Mutex
	count uint64
}

// Takes the lock and works under it for so long.
//
//go:noinline
func (a *account) withdraw(hold time.Duration) uint64 {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	work(hold)
	a.count++
	return a.count
}

//go:noinline
func work(hold time.Duration) {
	for begun := time.Now(); time.Since(begun) < hold; {
	}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:24700", "address")
	hold := flag.Duration("hold", 200*time.Microsecond, "how long the lock is held for each request")
	flag.Parse()
	shared := &account{}
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(answer, shared.withdraw(*hold))
	})
	if err := http.ListenAndServe(*listen, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
