// biome-ignore-all lint/suspicious/noConsole: what packages print there is what this is about.

import { afterEach, expect, test } from 'vitest';
import { logConsole } from '../../../src/cli/settings.ts';
import { collectLog } from '../../support/collected-log.ts';

const printed = console.warn;
afterEach(() => {
  console.warn = printed;
});

test('warnings that packages print are lines of the log, each once', () => {
  const { log, lines } = collectLog();
  logConsole(log);
  for (let again = 0; again < 3; again++) console.warn('IMPORTANT! %s\n  twice', 'policy');
  console.warn('another');
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [40, 'IMPORTANT! policy twice'],
    [40, 'another'],
  ]);
});
