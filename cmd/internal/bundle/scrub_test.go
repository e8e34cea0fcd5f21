package bundle

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestCredentialsInAMessageAreLeftOut(t *testing.T) {
	for _, text := range []string{
		// URLs
		`dial redis://:hunter2@redis:6379/0: refused`, `git clone https://ghp_hunter2@github.com/x`, `postgres://u:hun/hunter2@h/db`,
		`postgres://u:hun@hunter2@h/db`, `amqp://u:hunter2@h`, `http://hunter2:x@h/`, `"url":"https://u:hunter2@h/?a=b"`, `amqp://u:hunter2@sha256:1@h`,
		`GET https://h/c?sv=1&sig=hunter2&se=2`, `?sig=hunter2`, `https://h/?X-Amz-Credential=hunter2&X-Amz-Signature=hunter2`, `https://h/?api_key=hunter2`,
		`https://h/f?code=hunter2`,
		// variables and fields
		`PGPASSWORD=hunter2 psql`, `clientSecret: hunter2`, `dbPassword=hunter2`, `JWT_SECRET_KEY=hunter2`, `MYSQL_PWD=hunter2`, `AccountKey=hunter2;EndpointSuffix=x`,
		`passphrase: hunter2`, `REDIS_PASS=hunter2`, `pass=hunter2`, `db.password = hunter2`, `spring.datasource.password.value=hunter2`, `AWS_SECRET_ACCESS_KEY=hunter2`,
		`{Password:hunter2 User:u}`, `<password>hunter2</password>`, `password => 'hunter2'`, `password: |` + "\n  hunter2", `user/password: hunter2`, `user/password:hunter2`,
		`"privateKey":"hunter2"`, `tokens=[a b hunter2]`, `PASSWORD==hunter2`, `_auth=hunter2`, `PASSWORD=a,hunter2`,
		// quotes
		`password='my hunter2'`, `{"password":"a,hunter2"}`, `"password": "hun\"hunter2"`, `password="a b hunter2`, `{\"password\":\"a hunter2\"}`,
		`{\"password\": \"a\\\"b hunter2\", \"x\": 1}`, `password='it''s hunter2'`, `password: "a; hunter2"`,
		// headers
		`Authorization: token hunter2`, `Authorization: Bearer hunter2`, `"Authorization": "Digest u, hunter2"`, `Authorization: Digest username="u", response="hunter2"`,
		`curl -H 'Authorization: Basic hunter2' http://h`, `map[Authorization:[Basic hunter2]]`, `Cookie: a=b; c=hunter2`, `X-Auth-Token: hunter2`, `token: Bearer hunter2`,
		// commands
		`--password hunter2`, `--requirepass hunter2`, `requirepass hunter2`, `--password=hunter2`, `["--password","hunter2"]`, `"--db-password" "hunter2"`, `--token 'a hunter2'`,
		`redis-cli -a hunter2 ping`, `redis-cli -h redis -a "hunter2" ping`, `mysql -u root -phunter2 db`, `sshpass -p hunter2 ssh h`, `curl -u u:hunter2 http://h`, `curl -s --user u:hunter2 http://h`,
		`CREATE USER u IDENTIFIED BY 'hunter2'`, `exec: "redis-server --requirepass hunter2": executable file not found in $PATH`,
		// forms
		"-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----", "eyJhbGciOiJIUzI1NiJ9.hunter2.x",
	} {
		got := NewRedactor().Scrubbed(text)
		if strings.Contains(got, planted) || !strings.Contains(got, hidden) {
			t.Errorf("%s\n\tis shown as %s", text, got)
		}
		if again := NewRedactor().Scrubbed(got); again != got {
			t.Errorf("%s\n\tis shown as %s, and the second time as %s", text, got, again)
		}
	}
}

// A helper has to read what happened.
func TestOrdinaryMessagesStayReadable(t *testing.T) {
	for _, text := range []string{
		`Successfully pulled image "registry.example.com:5000/shop/db@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31" in 2.3s`,
		`docker-pullable://nginx@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31`,
		`docker-pullable://registry:5000/shop/db@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31`,
		`Pulling image "registry.example.com/vault/secret-store:v1.2"`, `Pulling image "registry/token-service:1"`,
		`FATAL: password authentication failed for user "root"`, `the password is wrong`, `MountVolume.SetUp failed for volume "a" : secret "db-password" not found`,
		`Readiness probe failed: Get "http://10.0.0.7:8080/ready": dial tcp 10.0.0.7:8080: connect: connection refused`, `secretName: db-password`, `PASSWORD_FILE=/run/secrets/db`,
		`couldn't find key password in Secret shop/db`, `0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available`,
		`Job web-gate of shop/web in east has 0 active and 1 failed pod(s)`, `gates passed: db/2, db/1`, `gate db (BeforeShrink) of web-2: command in pod web-2 of shop/web in east: exit code 1`,
		`secrets "db" is forbidden: User "system:serviceaccount:shop:x" cannot get resource "secrets" in API group "" in the namespace "shop"`,
		`rbac.authorization.k8s.io/v1, Kind=Role`, `bypass: the checks are passed`, `mail to admin@example.com`, `Started container db`, `set spec.approvedHash to 5e0d`,
		`StatefulSet shop/web in east: waiting for its controller to see generation 3`, `mysql --protocol tcp -h db`, `run --password-file /run/secrets/db`, `PASSWORD=""`, `Attach failed for volume "pv-2" : rpc error: code = Internal desc = timeout`,
	} {
		if got := NewRedactor().Scrubbed(text); got != text {
			t.Errorf("%s\n\tis shown as %s", text, got)
		}
	}
}

// The message of a container that waits quotes its command.
func TestWhatAContainerWaitsForIsNotQuoted(t *testing.T) {
	got := redacted(t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: `exec: "run hunter2": not found`}})
	if strings.Contains(got, planted) || !strings.Contains(got, "reason: RunContainerError") {
		t.Error(got)
	}
	if got := redacted(t, map[string]any{"waiting": "volume a is attached"}); !strings.Contains(got, "volume a is attached") {
		t.Errorf("what a plan waits for is lost: %s", got)
	}
}

// What a pod says to a gate is of the kind of the last words of a container.
func TestWhatAPodSaysToAGateIsLeftOut(t *testing.T) {
	for text, want := range map[string]string{
		"gate db (BeforeShrink) of web-2: command in pod web-2 of shop/web in east: exit code 1: a hunter2; expected exit code 0 and \"hunter2\" (asked 3 time(s) in 1m0s); `resume` tries again": "gate db (BeforeShrink) of web-2: command in pod web-2 of shop/web in east: exit code 1: (left out) (asked 3 time(s) in 1m0s); `resume` tries again",
		`gate db of web-2: HTTP status 200, and hunter2; expected HTTP status 200 to 399 and hunter2; asked every 5s, for up to 1m0s`:                                                             "gate db of web-2: HTTP status 200, (left out); asked every 5s, for up to 1m0s",
		`gate db of web-2: exit code 0; expected exit code 0 and hunter2`:                                                                                                                         "gate db of web-2: exit code 0; (left out)",
		`gate db of web-2: pod web-2 of shop/web does not exist; expected exit code 0 and hunter2; asked every 5s, for up to 1m0s`:                                                                "gate db of web-2: pod web-2 of shop/web does not exist; expected (left out); asked every 5s, for up to 1m0s",
		`overdue: gate db of web-2: no answer in 10s: hunter2; expected exit code 0; asked every 5s, for up to 1m0s`:                                                                              "overdue: gate db of web-2: no answer in 10s: (left out); asked every 5s, for up to 1m0s",
		`gate db of web-2: Job web-db of shop/web in east has 1 active and 0 failed pod(s), for up to 1m0s`:                                                                                       "gate db of web-2: Job web-db of shop/web in east has 1 active and 0 failed pod(s), for up to 1m0s",
	} {
		if got := NewRedactor().Scrubbed(text); got != want {
			t.Errorf("%s\n\tis shown as %s,\n\texpected    %s", text, got, want)
		}
	}
	got := redacted(t, map[string]any{"gates": []any{map[string]any{"name": "db", "expect": "hunter2", "expression": `code == 0 && text == "hunter2"`}}})
	if strings.Contains(got, planted) || !strings.Contains(got, "name: db") {
		t.Error(got)
	}
}
