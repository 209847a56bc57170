// A program for pods of the scenarios: it reports where it runs, and requests pages of others. Static, and so alone in its image.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"
)

const usage = "usage: echo serve TEXT | get URL | lookup NAME | hostname | append NAME DIRECTORY URL..."

func main() {
	if len(os.Args) == 2 && os.Args[1] == "hostname" {
		name, err := os.Hostname()
		report(name, err)
		return
	}
	if len(os.Args) > 4 && os.Args[1] == "append" {
		appendUntilEnded(os.Args[2], os.Args[3], os.Args[4:])
		return
	}
	if len(os.Args) != 3 {
		log.Fatal(usage)
	}
	argument := os.Args[2]
	switch os.Args[1] {
	case "serve":
		fmt.Println("serving on", argument)
		log.Fatal(http.ListenAndServe(":8080", http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(answer, argument)
		})))
	case "get":
		report(get(argument))
	case "lookup":
		addresses, err := net.LookupHost(argument)
		report(fmt.Sprint(addresses), err)
	default:
		log.Fatal(usage)
	}
}

func get(url string) (string, error) {
	client := http.Client{Timeout: 3 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

func report(text string, err error) {
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)
}
