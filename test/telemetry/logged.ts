import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createLogger } from '../../src/telemetry/logger.js';
import type { LoggerProps, RootLogger } from '../../src/telemetry/logger.js';

/** What a logger has written, once `write` is done with it. */
export async function logged(
  props: Omit<LoggerProps, 'destination'>,
  write: (log: RootLogger) => void,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'logger-'));
  const destination = openSync(join(folder, 'log'), 'w');
  onTestFinished(() => {
    closeSync(destination);
    rmSync(folder, { recursive: true });
  });
  write(await createLogger({ ...props, destination }));
  return readFileSync(join(folder, 'log'), 'utf8');
}
