// Zoo breaks the product on purpose, one guard at a time, and reports every breakage that the tests do not find.
//
// A variant is a small change of one declaration of the product, with the tests that must fail for it. It is found by
// the name of what is declared and by its syntax, so that other names, messages, files and neighbours are free. The
// variants are in the folder variants, one file for each part of the product. They are compiled by way of an overlay,
// so no file of the working tree is changed.
package main
