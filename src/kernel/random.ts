/** Random numbers. Only this file calls Math.random or randomBytes; tests pass a seeded source. */
import { randomBytes } from 'node:crypto';

export interface Random {
  /** A number in [0, 1). */
  unit(): number;
  bytes(n: number): Uint8Array;
}

export const systemRandom: Random = {
  unit: () => Math.random(),
  bytes: (n) => randomBytes(n),
};
