// Package view draws one migration for a terminal: both sides beside each other, how far it is, and what it waits for.
//
// It is pure: a frame is a function of a Migration, a size and a style. It reads no cluster, no clock and no
// environment. Every line fits the width, and the lines fit the height.
package view
