/** Where the one search of the console leads. */
import { expect, it } from 'vitest';
import { placeOf } from '../../src/console/web/kit/find.ts';

const UUID = '0197a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b';
const ADDRESS = `0x${'aB'.repeat(20)}`;

it.each([
  [`op_${UUID}`, `/operations/op_${UUID}`],
  [` drf_${UUID} `, `/drifts/drf_${UUID}`],
  [`dlv_${UUID}`, `/deliveries/dlv_${UUID}`],
  [`evt_${UUID}`, `/deliveries?event_id=evt_${UUID}`],
  [ADDRESS, `/wallets/${ADDRESS}`],
  ['12/345', '/tokens/12/345'],
  ['4711', '/operations?query=4711'],
  [`0x${'ab'.repeat(32)}`, `/operations?query=0x${'ab'.repeat(32)}`],
  ['order & 1', '/operations?query=order%20%26%201'],
  ['op_other', '/operations?query=op_other'],
  ['', '/operations'],
])('%j leads to %s', (text, place) => {
  expect(placeOf(text)).toBe(place);
});
