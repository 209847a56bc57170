package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// One request is given this long; then its fate is unknown.
const (
	patience = 2 * time.Second
	pause    = 100 * time.Millisecond
)

// The list is the text of one key of a ConfigMap, whose version the API server compares.
type list struct {
	Metadata map[string]any    `json:"metadata"`
	Data     map[string]string `json:"data"`
}

type client struct {
	http  http.Client
	token string
	urls  []string
}

// append NAME DIRECTORY URL...: reads the list and appends to it without end, and prints what was invoked and what came of it,
// with the machine's time. DIRECTORY has ca.crt and token, as a pod has them. Each URL is of the ConfigMap, by another
// API server. An append whose fate is unknown is never repeated: the next one is another. SIGTERM ends it once what is under
// way is printed.
func appendUntilEnded(name, directory string, urls []string) {
	ca, err := os.ReadFile(directory + "/ca.crt")
	check(err)
	token, err := os.ReadFile(directory + "/token")
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	api := client{token: strings.TrimSpace(string(token)), urls: urls}
	api.http = http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	for number := 0; len(ended) == 0; number++ {
		entry := fmt.Sprintf("%s%d", name, number)
		began := time.Now()
		seen, err := api.read()
		if err != nil {
			failed(name, err)
			api.next()
			time.Sleep(pause)
			continue
		}
		entries := strings.Fields(seen.Data["list"])
		record("read", last(entries), len(entries), began)
		began = time.Now()
		seen.Data = map[string]string{"list": strings.Join(append(entries, entry), " ")}
		switch done, err := api.write(seen); {
		case err != nil:
			failed(name, err)
			record("unknown", entry, 0, began)
			api.next()
		case done:
			record("appended", entry, len(entries)+1, began)
		default:
			record("refused", entry, 0, began)
		}
		time.Sleep(pause)
	}
}

func (api *client) read() (*list, error) {
	status, body, err := api.request(http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("status %d", status)
	}
	seen := new(list)
	return seen, json.Unmarshal(body, seen)
}

// Whether it was written; false if another one was faster.
func (api *client) write(changed *list) (bool, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": changed.Metadata, "data": changed.Data,
	})
	check(err)
	status, _, err := api.request(http.MethodPut, body)
	switch {
	case err != nil:
		return false, err
	case status == http.StatusOK:
		return true, nil
	case status == http.StatusConflict:
		return false, nil
	}
	return false, fmt.Errorf("status %d", status)
}

func (api *client) request(method string, body []byte) (int, []byte, error) {
	request, err := http.NewRequest(method, api.urls[0], bytes.NewReader(body))
	check(err)
	request.Header.Set("Authorization", "Bearer "+api.token)
	request.Header.Set("Content-Type", "application/json")
	// The transport reports it from goroutines of its own.
	var stage atomic.Value
	stage.Store("before a connection")
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		ConnectStart:      func(_, address string) { stage.Store("connecting to " + address) },
		TLSHandshakeStart: func() { stage.Store("in the TLS handshake") },
		WroteRequest:      func(httptrace.WroteRequestInfo) { stage.Store("waiting for an answer") },
	}))
	answer, err := api.http.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", stage.Load(), err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, content, err
}

// The next request goes by another API server, and by another connection.
func (api *client) next() {
	api.urls = append(api.urls[1:], api.urls[0])
	api.http.CloseIdleConnections()
}

func record(what, entry string, position int, began time.Time) {
	if entry == "" {
		entry = "-"
	}
	fmt.Println(what, entry, position, began.UnixMicro(), time.Now().UnixMicro())
}

// What a gap is explained by.
func failed(name string, err error) {
	fmt.Println("#", name, time.Now().UTC().Format("15:04:05.000"), err)
}

func last(entries []string) string {
	if len(entries) == 0 {
		return ""
	}
	return entries[len(entries)-1]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
