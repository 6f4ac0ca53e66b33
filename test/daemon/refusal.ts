/** How loading refuses a configuration. */
import { expect } from 'vitest';
import { type Environment, loadConfig } from '../../src/daemon/config/config.ts';

/** The line with which loading fails. */
export function refusal(env: Environment): string {
  try {
    loadConfig(env);
  } catch (error) {
    expect(error).toMatchObject({ code: 'bad_setting' });
    return String((error as { detail?: string }).detail);
  }
  throw new Error('the configuration was accepted');
}
