/** Account reads (section 4.2): without a query the own wallet, with `addr` any wallet. */
import { ADDRESS_LENGTH, addressKey } from '../../kernel/addresses.ts';
import { callerOf } from '../state/grants.ts';
import type { Wallet } from '../state/records.ts';
import { walletOf } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, success } from './call.ts';
import { accountRefusal } from './errors.ts';

/** GET /v1/app/token/account */
export function readAccount(world: World, call: Call): Answer {
  const caller = callerOf(world, call.authorization);
  const addr = call.query.get('addr');
  if (!caller || caller.kind !== (addr === null ? 'user' : 'client')) throw accountRefusal(401);
  const { wallets } = world.asOf(world.now() - Math.max(call.ageMs, world.switches().read_lag_ms));
  if (caller.kind === 'user') {
    const wallet = walletOf(world, caller.member);
    return success(recordOf(wallets.get(addressKey(wallet.addr)) ?? wallet));
  }
  if (addr?.length !== ADDRESS_LENGTH) throw accountRefusal(399);
  const wallet = wallets.get(addressKey(addr));
  if (!wallet) throw accountRefusal(398);
  return success(recordOf(wallet));
}

function recordOf({ addr, balance, status }: Wallet) {
  return { token_addr: addr, amt_token: balance, status };
}
