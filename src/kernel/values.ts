/** Types of values, without any code: the browser's modules import them too. */

/** Milliseconds since 1970-01-01T00:00:00Z. */
export type Instant = number;

export type IdPrefix =
  | ('op' | 'evt' | 'ep' | 'dlv' | 'drf' | 'rep' | 'con')
  | ('per' | 'key' | 'wat' | 'obs' | 'dmn' | 'alr' | 'rpl' | 'imp');

export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
