/** Pre-images are stored short, and read as they were. */
import { expect, it } from 'vitest';
import type { Json } from '../../src/kernel/json.ts';
import { imageOf, storedImage } from '../../src/operations/intake/pre-image.ts';

const seen = { addr: '0xAb', status: 1, balance: 7 };
const poll = { at: 5, name: 'wallet:0xab', seen };

it('A wallet is stored as the values of its poll', () => {
  const image = { wallets: [poll, { ...poll, at: null, seen: { ...seen, balance: 2n ** 70n } }] };
  expect(storedImage(image)).toEqual({
    wallets: [
      [5, '0xAb', 1, 7],
      [null, '0xAb', 1, 2n ** 70n],
    ],
  });
});

it.each([
  null,
  { wallets: [] },
  { wallets: [poll, { ...poll, seen: null }] },
  {
    wallets: [
      { ...poll, name: 'wallet:0xcd' },
      { ...poll, cause: 'x' },
      { at: 1, name: 'x' },
    ],
  },
  {
    wallets: [
      { ...poll, seen: { ...seen, more: [] } },
      { ...poll, seen: { addr: '0xab' } },
    ],
  },
  { wallets: [poll], at: 1 },
  { token: { lastTxHash: '0x1', status: 2 }, at: 5 },
  { wallets: 'x' },
  ['x'],
])('%j is read as it was', (image) => {
  expect(imageOf(storedImage(image as Json))).toEqual(image);
});
