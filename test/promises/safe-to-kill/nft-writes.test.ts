/** Promise 10 for the other NFT writes, which share their path with a mint. */
import { testKills } from './kill.ts';

testKills(['mint_sequential', 'burn', 'set_extra_data', 'transfer_from'], 'its decisive');
