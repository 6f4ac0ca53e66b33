/** Promise 10 for a mint, whose result is a hash and whose effect comes later. */
import { testKills } from './kill.ts';

testKills(['mint'], 'each of its');
