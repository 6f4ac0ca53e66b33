/** Random numbers that repeat: tests take them as an argument, as the program takes its own. */
import type { Random } from '../../src/kernel/random.ts';

/**
 * A reproducible stream from a 32-bit seed.
 * Source: sfc32 by Chris Doty-Humphrey (PractRand), seeded by splitmix32.
 */
export function seededRandom(seed: number): Random {
  let s = seed >>> 0;
  const split = () => {
    s = (s + 0x9e3779b9) | 0;
    let t = s ^ (s >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return (t ^ (t >>> 15)) >>> 0;
  };
  let [a, b, c, d] = [split(), split(), split(), 1];
  const next = () => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) next();
  return {
    unit: () => next() / 4294967296,
    bytes: (n) => Uint8Array.from({ length: n }, () => next() & 0xff),
  };
}
