// biome-ignore-all lint/suspicious/noConsole: the test covers output of packages.

import { afterEach, expect, test } from 'vitest';
import { logConsole } from '../../../src/cli/settings.ts';
import { collectLog } from '../../support/servers/collected-log.ts';

const originalWarn = console.warn;
afterEach(() => {
  console.warn = originalWarn;
});

test('warnings that packages print are lines of the log, each once', () => {
  const { log, lines } = collectLog();
  logConsole(log);
  for (let count = 0; count < 3; count++) console.warn('IMPORTANT! %s\n  twice', 'policy');
  console.warn('another');
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [40, 'IMPORTANT! policy twice'],
    [40, 'another'],
  ]);
});
