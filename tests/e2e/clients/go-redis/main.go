// main.go -- go-redis, from the module proxy (registry.py).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/redis/go-redis/v9"
)

type world struct {
	Host        string
	Ports       map[string]int
	Certificate string
	CheckToken  string `json:"check_token"`
	AdminToken  string `json:"admin_token"`
	Golden      []struct {
		NowNs    string `json:"now_ns"`
		Quantity int
		Reply    []int
	}
}

var (
	page world
	ctx  = context.Background()
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func same(is, should any) {
	if !reflect.DeepEqual(is, should) {
		panic(fmt.Sprintf("came %v instead of %v", is, should))
	}
}

func refused(err error, why string) {
	if err == nil || !strings.Contains(err.Error(), why) {
		panic(fmt.Sprintf("not refused because of %q: %v", why, err))
	}
}

// client asks as an application would, with what it is told beyond the address.
func client(server string, set func(*redis.Options)) *redis.Client {
	options := &redis.Options{Addr: fmt.Sprintf("%s:%d", page.Host, page.Ports[server]), MaxRetries: -1}
	if set != nil {
		set(options)
	}
	return redis.NewClient(options)
}

func plain() *redis.Client { return client("plain", nil) }

func ints(cmd *redis.Cmd) []int {
	reply, err := cmd.Int64Slice()
	check(err)
	out := make([]int, len(reply))
	for i, n := range reply {
		out[i] = int(n)
	}
	return out
}

func connect() {
	r := client("plain", func(o *redis.Options) { o.ClientName = "shop" })
	defer r.Close()
	check(r.Ping(ctx).Err())
	name, err := r.ClientGetName(ctx).Result()
	check(err)
	same(name, "shop")
}

func throttle() {
	r := plain()
	defer r.Close()
	for _, row := range page.Golden {
		check(r.Do(ctx, "WEIR.CLOCK", row.NowNs).Err())
		same(ints(r.Do(ctx, "CL.THROTTLE", "golden", 4, 1, 1, row.Quantity)), row.Reply)
	}
}

func ask(r *redis.Client, ip string) []any {
	reply, err := r.Do(ctx, "WEIR.CHECK", "ip", ip, "uri", "/").Slice()
	check(err)
	return reply
}

func checkByRules() {
	r := plain()
	defer r.Close()
	for left := int64(4); left >= 0; left-- {
		same(ask(r, "192.0.2.7")[:4], []any{int64(1), "per-ip", int64(5), left})
	}
	answer := ask(r, "192.0.2.7")
	same([]any{answer[0], answer[1], answer[4], answer[8]}, []any{int64(0), "per-ip", int64(2000), "limited"})
}

func errors() {
	r := plain()
	defer r.Close()
	refused(r.Do(ctx, "CL.THROTTLE", "k", 4, 0, 1).Err(), "Zero rates")
	refused(r.Set(ctx, "k", 1, 0).Err(), "unknown command")
	check(r.Ping(ctx).Err())
}

func pipeline() {
	r := plain()
	defer r.Close()
	replies, err := r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := 0; i < 100; i++ {
			pipe.Do(ctx, "CL.THROTTLE", "pipeline", 4, 1, 60)
		}
		return nil
	})
	check(err)
	for i, reply := range replies {
		same(ints(reply.(*redis.Cmd))[0] == 0, i < 5)
	}
}

func multi() {
	r := plain()
	defer r.Close()
	replies, err := r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Do(ctx, "CL.THROTTLE", "multi", 4, 1, 60)
		pipe.Ping(ctx)
		pipe.Do(ctx, "CL.THROTTLE", "multi", 4, 1, 60)
		return nil
	})
	check(err)
	same(ints(replies[0].(*redis.Cmd)), []int{0, 5, 4, -1, 60})
	same(replies[1].(*redis.StatusCmd).Val(), "PONG")
	same(ints(replies[2].(*redis.Cmd)), []int{0, 5, 3, -1, 120})
}

func resp3() {
	left := int64(4)
	for _, version := range []int{3, 2} {
		r := client("plain", func(o *redis.Options) { o.Protocol = version })
		defer r.Close()
		same(ask(r, "192.0.2.8")[:4], []any{int64(1), "per-ip", int64(5), left})
		same(ints(r.Do(ctx, "WEIR.TAKE", "resp3", "5/10s"))[:3], []int{1, 5, int(left)})
		left--
	}
}

func events() {
	r := plain()
	defer r.Close()
	listener := r.Subscribe(ctx, "weir.events.mode")
	defer listener.Close()
	_, err := listener.Receive(ctx) // the confirmation
	check(err)
	check(r.Do(ctx, "WEIR.MODE", "shadow", "per-ip").Err())
	message, err := listener.ReceiveMessage(ctx)
	check(err)
	var event struct{ Rule string }
	check(json.Unmarshal([]byte(message.Payload), &event))
	same([]string{message.Channel, event.Rule}, []string{"weir.events.mode", "per-ip"})
}

func auth() {
	with := func(user, token string) *redis.Client {
		return client("guarded", func(o *redis.Options) { o.Username, o.Password = user, token })
	}
	refused(client("guarded", nil).Ping(ctx).Err(), "NOAUTH")
	refused(with("", "wrong").Ping(ctx).Err(), "token is not known")
	r := with("", page.CheckToken)
	defer r.Close()
	check(r.Do(ctx, "WEIR.CHECK", "ip", "192.0.2.7").Err())
	refused(r.Do(ctx, "WEIR.MODE", "off", "per-ip").Err(), "needs the admin role")
	admin := with("default", page.AdminToken)
	defer admin.Close()
	check(admin.Do(ctx, "WEIR.MODE", "off", "per-ip").Err())
}

func overTLS() {
	pem, err := os.ReadFile(page.Certificate)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	r := client("tls", func(o *redis.Options) {
		o.Password = page.CheckToken
		o.TLSConfig = &tls.Config{RootCAs: trusted}
	})
	defer r.Close()
	same(ints(r.Do(ctx, "CL.THROTTLE", "tls", 4, 1, 60)), []int{0, 5, 4, -1, 60})
}

func main() {
	text, err := os.ReadFile(os.Getenv("WEIR_WORLD"))
	check(err)
	check(json.Unmarshal(text, &page))
	steps := []struct {
		name string
		do   func()
	}{
		{"connect", connect}, {"throttle", throttle}, {"check", checkByRules}, {"errors", errors}, {"pipeline", pipeline},
		{"multi", multi}, {"resp3", resp3}, {"events", events}, {"auth", auth}, {"tls", overTLS},
	}
	line := "go-redis " + redis.Version() + ":"
	for _, step := range steps {
		step.do()
		line += " " + step.name
	}
	fmt.Println(line)
}
