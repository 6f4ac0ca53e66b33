/** A machine whose clocks move only when the test says so. */
import { countMachine, type MachineCount } from '../../src/kernel/clock.ts';

export interface ManualMachine {
  count: MachineCount;
  uptimeMs(): number;
  /** All clocks go on. */
  pass(ms: number): void;
  /** Nothing runs, and the count of the time awake stands still. */
  suspend(ms: number): void;
  /** Somebody sets the wall clock. */
  setClock(byMs: number): void;
  /** A container moves to a machine that has been up for longer or shorter. */
  move(byMs: number): void;
}

export function manualMachine(): ManualMachine {
  const at = { wall: 1_000_000, awake: 5_000, up: 70_000 };
  const add = (wall: number, awake: number, up: number) => {
    at.wall += wall;
    at.awake += awake;
    at.up += up;
  };
  return {
    count: countMachine({
      wallMs: () => at.wall,
      awakeMs: () => at.awake,
      uptimeMs: () => Math.floor(at.up / 1000) * 1000,
    }),
    uptimeMs: () => at.up,
    pass: (ms) => add(ms, ms, ms),
    suspend: (ms) => add(ms, 0, ms),
    setClock: (byMs) => add(byMs, 0, 0),
    move: (byMs) => add(0, 0, byMs),
  };
}
