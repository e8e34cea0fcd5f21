// Zoo breaks the product on purpose, one guard at a time, and reports every breakage that the tests do not find.
//
// A variant is a small change of one file of the product, with the tests that must fail for it. The variants are in
// the folder variants, one file for each part of the product. They are compiled by way of an overlay, so no file of
// the working tree is changed.
package main
