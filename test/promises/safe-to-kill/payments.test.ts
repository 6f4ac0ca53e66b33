/** Promise 10 for the other token writes, which share their path with a give. */
import { testKills } from './kill.ts';

testKills(['receive_from', 'transfer'], 'its decisive');
