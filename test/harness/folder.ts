/** A temporary folder for the tests of one file, removed after them. */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tallyhook-test-'));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
