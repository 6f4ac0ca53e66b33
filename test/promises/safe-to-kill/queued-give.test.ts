/** Promise 10 for a give that waits in the request queue until the service is back. */
import { testKills } from './kill.ts';

testKills(['queued give'], 'each of its queued');
