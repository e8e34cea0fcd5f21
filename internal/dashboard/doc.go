// Package dashboard serves a page that shows where every migration stands, and keeps it up to date.
//
//	row.go     what is shown of a plan
//	board.go   the rows, and what has changed since a version
//	server.go  the page and its stream of events (server-sent events)
//	token.go   a token for the user who has started the server
//	page/      HTML, CSS and JavaScript, built into the program: nothing is loaded from elsewhere
//
// The page only shows. The server answers nothing but reads, and sends rows only to clients whose token the
// caller accepts. The package reads no cluster: the caller fills the board when something changes.
package dashboard
