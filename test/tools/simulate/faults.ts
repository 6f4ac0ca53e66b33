/** The faults that a simulation can have beside lost answers, outages and restarts. */

export const FAULTS = {
  generic: 'reads are answered for a while as if there was no such route, token or wallet',
  probes: 'for a while only the maintenance path fails, or only the authorization host',
  vanish: 'a wallet is not found for a while, or counts as withdrawn',
  answers: 'answers lack tx_app_no, and apps report such writes with both numbers',
  reports: 'one of several drifts of a wallet is reported late, also before a further change',
  suspend: 'the machine of a daemon is suspended with a write under way',
} as const;

export type Fault = keyof typeof FAULTS;

export const ALL_FAULTS = Object.keys(FAULTS) as Fault[];

/** @throws Error for a name that is no fault */
export function faultsOf(names: string): Fault[] {
  return names
    .split(',')
    .filter((name) => name !== '')
    .map((name) => {
      const fault = ALL_FAULTS.find((one) => one === name);
      if (!fault) throw new Error(`${name}: expected some of ${ALL_FAULTS.join(', ')}`);
      return fault;
    });
}
