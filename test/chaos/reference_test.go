//go:build patroni && linux

package chaos

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shipped is the directory of the set-up that docs/postgresql.md describes.
const shipped = "../../deploy/postgresql"

// network is the prefix of the test's addresses. In the set-up they begin with 10.0.0.
const network = "127.8.14."

// machine is one of the set-up's machines, with its files. All of them run on this machine.
type machine struct {
	*reference
	name, address, dir string
	patroni            *program
}

// reference is the set-up: etcd on three machines, PostgreSQL with Patroni and PgBouncer on two.
type reference struct {
	t        *testing.T
	dir, bin string
	as       *syscall.Credential // PostgreSQL refuses to run as root
	password string              // of the role authd
	secrets  []string            // environment of Patroni
	client   *http.Client
	machines []*machine
}

// clientTLS matches settings that make PgBouncer 1.18 fail: it ends when a query is cancelled over
// TLS.
var clientTLS = regexp.MustCompile(`(?m)^client_tls.*\n`)

// newReference starts the set-up. It returns when a primary has a synchronous standby.
func newReference(t *testing.T) *reference {
	u, err := user.Lookup("postgres")
	if err != nil || os.Getuid() != 0 {
		t.Fatal("this test needs root, and the Debian packages patroni, etcd-server, postgresql, pgbouncer and nginx-light")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32) // numeric on Linux
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	initdb, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is valid
	if len(initdb) == 0 {
		t.Fatal("no PostgreSQL on this machine")
	}
	// This is not the test's directory, because the user postgres needs access to it.
	dir, err := os.MkdirTemp("", "patroni")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &reference{t: t, dir: dir, bin: filepath.Dir(initdb[len(initdb)-1]), password: token()}
	r.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for i := range 3 {
		name := fmt.Sprintf("db%d", i+1)
		r.machines = append(r.machines, &machine{
			reference: r, name: name, address: fmt.Sprintf("%s%d", network, 11+i), dir: filepath.Join(dir, name),
		})
	}
	r.certificates()
	r.write("authd.password", r.password)
	r.write("userlist.txt", fmt.Sprintf("%q %q\n", "authd", r.password))
	r.write("create-database.sh", strings.ReplaceAll(r.read("create-database.sh"), "/etc/patroni", dir))
	r.secrets = []string{
		"PATRONI_SUPERUSER_PASSWORD=" + token(), "PATRONI_REPLICATION_PASSWORD=" + token(),
		"PATRONI_REWIND_PASSWORD=" + token(),
	}
	for _, m := range r.machines {
		m.start(m.settings(), "etcd")
	}
	for _, m := range r.machines[:2] {
		m.write("patroni.yaml", m.localized("patroni.yaml"))
		m.write("pgbouncer.ini", clientTLS.ReplaceAllString(m.localized("pgbouncer.ini"), ""))
		m.patroni = m.start(r.secrets, "patroni", filepath.Join(m.dir, "patroni.yaml"))
		m.start(nil, "/usr/sbin/pgbouncer", filepath.Join(m.dir, "pgbouncer.ini"))
	}
	r.inSync()
	return r
}

// token returns a random secret.
func token() string { return rand.Text() }

// read returns the content of a file of the set-up.
func (r *reference) read(name string) string {
	b, err := os.ReadFile(filepath.Join(shipped, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *reference) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	err := os.WriteFile(path, []byte(text), 0o700)
	if err == nil {
		err = os.Chown(path, int(r.as.Uid), int(r.as.Gid))
	}
	if err == nil {
		err = os.Chown(r.dir, int(r.as.Uid), int(r.as.Gid))
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	for _, path := range []string{m.dir, filepath.Join(m.dir, "run"), filepath.Join(m.dir, "etcd")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			m.t.Fatal(err)
		}
		if err := os.Chown(path, int(m.as.Uid), int(m.as.Gid)); err != nil {
			m.t.Fatal(err)
		}
	}
	m.reference.write(filepath.Join(m.name, name), text)
}

// localized returns a file of the set-up, changed for this machine as an operator would. Its
// directories are below the test's directory.
func (m *machine) localized(name string) string {
	var out strings.Builder
	for line := range strings.Lines(m.read(name)) {
		if !strings.Contains(line, "10.0.0.12") { // this line lists all machines
			line = strings.ReplaceAll(line, "10.0.0.11", m.address)
			line = regexp.MustCompile(`\bdb1$`).ReplaceAllString(strings.TrimSuffix(line, "\n"), m.name) + "\n"
		}
		out.WriteString(line)
	}
	return strings.NewReplacer("10.0.0.0/24", "127.0.0.0/8", "10.0.0.", network,
		"/etc/mcp-authd-db", m.reference.dir, "/etc/patroni", m.reference.dir, "/etc/pgbouncer", m.reference.dir,
		"/var/lib/etcd", filepath.Join(m.dir, "etcd"), "/var/lib/postgresql/15", m.dir,
		"/var/run/postgresql", filepath.Join(m.dir, "run"), "/usr/lib/postgresql/15/bin", m.bin).Replace(out.String())
}

// settings returns the settings of etcd, whose file contains environment variables.
func (m *machine) settings() (out []string) {
	m.write("etcd.env", m.localized("etcd.env"))
	for line := range strings.Lines(m.localized("etcd.env")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// program is a program that runs until the end of the test or of the test process.
type program struct {
	cmd  *exec.Cmd
	in   io.WriteCloser // the program runs while this is open
	pids string         // file with its process id
}

// keeping runs a program until standard input ends.
const keeping = `"$@" & echo $! > "$0"; cat > /dev/null; kill $(cat "$0"); wait`

func (m *machine) start(environ []string, command ...string) *program {
	m.t.Helper()
	base := filepath.Join(m.dir, filepath.Base(command[0]))
	log, err := os.OpenFile(base+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	p := &program{pids: base + ".pid"}
	p.cmd = exec.Command("/bin/sh", append([]string{"-c", keeping, p.pids}, command...)...)
	p.cmd.Env = append(append(os.Environ(), "HOME="+m.dir), environ...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = m.dir, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: m.as, Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		p.end()
		if text, err := os.ReadFile(log.Name()); m.t.Failed() && err == nil {
			m.t.Logf("%s of %s:\n%s", command[0], m.name, text[max(0, len(text)-3000):])
		}
	})
	return p
}

// end ends the program and its children.
func (p *program) end() {
	p.in.Close()
	_ = p.cmd.Wait() // it may exit with an error
}

// pid returns the process id at the start of a file.
func pid(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	n, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// certificates creates a certificate authority, and one certificate for all machines.
func (r *reference) certificates() {
	if err := os.Chown(r.dir, int(r.as.Uid), int(r.as.Gid)); err != nil {
		r.t.Fatal(err)
	}
	root, rootKey := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "databases"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, r.key()
	leaf, leafKey := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotAfter: root.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature,
	}, r.key()
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} // the source address of all requests between them
	for _, m := range r.machines {
		leaf.IPAddresses = append(leaf.IPAddresses, net.ParseIP(m.address))
	}
	sign := func(c *x509.Certificate, of *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, c, root, of.Public(), rootKey)
		if err != nil {
			r.t.Fatal(err)
		}
		return der
	}
	private, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		r.t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sign(root, rootKey)})
	r.write("ca.crt", string(ca))
	r.write("node.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sign(leaf, leafKey)})))
	r.write("node.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	r.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool},
	}}
}

func (r *reference) key() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	return k
}

// is asks Patroni, like a load balancer, whether the machine has a role.
func (m *machine) is(role string) bool {
	resp, err := m.client.Get("https://" + m.address + ":8008/" + role)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// failover is the time limit for Patroni: thirty seconds until the leader's lease ends, plus the
// delays of a busy machine.
const failover = 5 * time.Minute

// inSync waits until one machine is the primary and the other its synchronous standby, and returns
// both.
func (r *reference) inSync() (primary, standby *machine) {
	r.t.Helper()
	a, b := r.machines[0], r.machines[1]
	if !within(failover, func() bool {
		switch {
		case a.is("primary") && b.is("sync"):
			primary, standby = a, b
		case b.is("primary") && a.is("sync"):
			primary, standby = b, a
		}
		return primary != nil
	}) {
		r.t.Fatal("no primary with a synchronous standby")
	}
	return primary, standby
}

// processes returns the process ids of Patroni, of the postmaster, and of the postmaster's
// children.
func (m *machine) processes() []int {
	postmaster := pid(m.t, filepath.Join(m.dir, "mcp-authd", "postmaster.pid"))
	out := []int{pid(m.t, m.patroni.pids), postmaster}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, field := range strings.Fields(string(b)) {
		n, err := strconv.Atoi(field)
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

func (m *machine) signal(s syscall.Signal) {
	for _, one := range m.processes() {
		_ = syscall.Kill(one, s) // it may have ended
	}
}

// url returns the URL of the database as in docs/postgresql.md.
func (r *reference) url() string {
	return fmt.Sprintf("postgres://authd:%s@%s,%s/authd?sslmode=verify-full&sslrootcert=%s/ca.crt",
		r.password, r.machines[0].address, r.machines[1].address, r.dir)
}

// bounced returns the URL through PgBouncer on both machines, without TLS (clientTLS).
func (r *reference) bounced() string {
	return fmt.Sprintf("postgres://authd:%s@%s:6432,%s:6432/authd?sslmode=disable&default_query_exec_mode=cache_describe",
		r.password, r.machines[0].address, r.machines[1].address)
}
