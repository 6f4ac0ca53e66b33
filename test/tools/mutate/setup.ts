/**
 * Properties draw the same examples in every run, so that a mutant's end is no chance, and not for
 * long, because they run for thousands of mutants.
 */
import fc from 'fast-check';

fc.configureGlobal({ seed: 1, interruptAfterTimeLimit: 1_000 });
