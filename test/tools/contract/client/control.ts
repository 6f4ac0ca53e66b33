/**
 * The control surface of a sandbox under test, for states that no request of the interface can set.
 * Temporary changes are restored.
 */
import { type Agent, request } from 'undici';

/** The part of the state that the suite uses; whole numbers are decimal text. */
interface ControlState {
  now: number;
  switches: Record<string, unknown>;
  redirect_uris: string[];
  contracts: { contract_id: string; own: boolean; creator_addr: string }[];
  operators: { operation_no: string; addr: string; balance: string }[];
  members: { member_no: string; nickname: string; addr: string | null }[];
}

export interface Control {
  state(): Promise<ControlState>;
  setWallet(addr: string, change: { amt_token?: string; status?: number }): Promise<void>;
  setToken(contract: bigint, token: bigint, change: object): Promise<void>;
  /** Makes the next chain write fail. */
  failNext(): Promise<void>;
  /** Returns the number of a new member without a wallet. */
  addMember(nickname: string): Promise<string>;
  moveClock(ms: number): Promise<void>;
  /** The next request that contains the text meets the fault. */
  withFault<T>(fault: object, contains: string, work: () => Promise<T>): Promise<T>;
  withSwitches<T>(switches: object, work: () => Promise<T>): Promise<T>;
  withMaintenance<T>(change: object, work: () => Promise<T>): Promise<T>;
}

/** @param url where the sandbox listens, with or without `/_sandbox` */
export function makeControl(url: string, agent: Agent): Control {
  const surface = `${url.replace(/\/+$/, '').replace(/\/_sandbox$/, '')}/_sandbox`;
  async function call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) {
    const answer = await request(surface + path, {
      method,
      dispatcher: agent,
      headers: { 'content-type': 'application/json' },
      body: body ? JSON.stringify(body) : null,
    });
    const text = await answer.body.text();
    if (answer.statusCode === 200) return JSON.parse(text);
    throw new Error(`the control surface answered ${answer.statusCode} ${text} to ${path}`);
  }
  const state = (): Promise<ControlState> => call('GET', '/state');
  return {
    state,
    setWallet: (addr, change) => call('POST', `/wallets/${addr}`, change),
    setToken: (contract, token, change) => call('POST', `/tokens/${contract}/${token}`, change),
    failNext: () => call('POST', '/tokens/fail-next', { count: 1 }),
    addMember: async (nickname) => (await call('POST', '/members', { nickname })).member_no,
    moveClock: (ms) => call('POST', '/clock', { advance_ms: ms }),
    async withFault(fault, contains, work) {
      await call('POST', '/faults', { ...fault, contains });
      return restoring(work, () => call('DELETE', '/faults'));
    },
    async withSwitches(switches, work) {
      const before = (await state()).switches;
      const restored = Object.keys(switches).map((name) => [name, before[name]]);
      await call('POST', '/switches', switches);
      return restoring(work, () => call('POST', '/switches', Object.fromEntries(restored)));
    },
    async withMaintenance(change, work) {
      await call('POST', '/maintenance', change);
      return restoring(work, () => call('POST', '/maintenance', { state: 'off' }));
    },
  };
}

async function restoring<T>(work: () => Promise<T>, restore: () => Promise<unknown>): Promise<T> {
  try {
    return await work();
  } finally {
    await restore();
  }
}
