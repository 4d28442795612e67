/** FoldDB for Java: a store in which the value of a key is the fold of all its writes. */
package org.folddb;
