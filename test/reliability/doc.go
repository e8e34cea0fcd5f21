// Reliability plays the proofs of this project for as long as it is told to, keeps what was played and what came of
// it, and writes docs/reliability.md of that, with its tables in docs/development/reliability-tables.md.
//
// Each part of the proof is a program or a test that plays a share of its cases, other ones for every day. Rounds of
// all parts follow one another until everything was played, or the time is over. What a part has played is in
// results.json, one entry for a series of cases, with the commit that was tried. The pages are a function of that file
// and of the tables in the folder tables, and say of each part how much of it was played.
package main
