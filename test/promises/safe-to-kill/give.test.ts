/** Promise 10 for a give: a daemon killed at any step of it neither loses nor doubles it. */
import { testKills } from './kill.ts';

testKills(['give'], 'each of its');
