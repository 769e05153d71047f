// SPDX-License-Identifier: Apache-2.0

// What an API server takes when nobody thinks: the services and pods of many jobs, created in parallel over one
// connection.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

var (
	server    = flag.String("server", "", "https://HOST:PORT")
	authority = flag.String("authority", "", "file of certificates")
	token     = flag.String("token", "", "bearer token")
	namespace = flag.String("namespace", "default", "where")
	pod       = flag.String("pod", "", "file of a pod, with NAME in it")
	service   = flag.String("service", "", "file of a service, with NAME in it")
	jobs      = flag.Int("jobs", 1, "how many jobs")
	tasks     = flag.Int("tasks", 11, "pods and services of each")
	parallel  = flag.Int("parallel", 32, "calls at once")
)

type creation struct {
	kind string
	body []byte
}

func read(path string) []byte {
	text, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	return text
}

func newClient() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(read(*authority))
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2: true,
	}}
}

func create(client *http.Client, one creation) error {
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/%s", *server, *namespace, one.kind)
	request, err := http.NewRequest(http.MethodPost, address, bytes.NewReader(one.body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s: %s", address, answer.Status, text)
	}
	return err
}

func main() {
	flag.Parse()
	client := newClient()
	podText, serviceText := read(*pod), read(*service)
	queue := make(chan creation, 1024)
	var made atomic.Int64
	var workers sync.WaitGroup
	for i := 0; i < *parallel; i++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for one := range queue {
				if err := create(client, one); err != nil {
					log.Fatal(err)
				}
				made.Add(1)
			}
		}()
	}
	for job := 0; job < *jobs; job++ {
		for _, each := range []creation{{"services", serviceText}, {"pods", podText}} {
			for task := 0; task < *tasks; task++ {
				name := []byte(fmt.Sprintf("job-%d-task-%d", job, task))
				queue <- creation{each.kind, bytes.ReplaceAll(each.body, []byte("NAME"), name)}
			}
		}
	}
	close(queue)
	workers.Wait()
	fmt.Println(made.Load())
}
