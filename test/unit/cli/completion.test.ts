import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { createProgram } from '../../../src/processes/program.ts';

async function outputOf(...words: string[]): Promise<string> {
  let text = '';
  const write = async (piece: string): Promise<void> => {
    text += piece;
  };
  const terminal = { write } as unknown as Terminal;
  const cli = { processEnv: {}, fromDotEnv: new Set<string>(), terminal, entry: '' };
  const program = await createProgram(cli, ['completion', ...words]);
  await program.parseAsync(['completion', ...words], { from: 'user' });
  return text;
}

test.each([
  ['', ['import', 'jobs', 'completion', '--data-dir', '--help']],
  ['jobs', ['retry', 'rejects', '--help']],
  ['--data-dir x jobs list', ['--status', '--json']],
  ['export --format', ['csv', 'ndjson', 'parquet']],
])('the words after "sluice %s" are its commands, options or values', async (line, words) => {
  expect((await outputOf('--words', line)).split('\n')).toEqual(expect.arrayContaining(words));
});

test('options for use between processes are not offered', async () => {
  expect(await outputOf('--words', 'work')).not.toContain('--only');
});

test('bash offers the words that start with the typed text', async () => {
  const complete = async (word: string) => {
    const line = `sluice() { [[ "$*" == "completion --words jobs" ]] && printf '%s\\n' retry rejects list --help; }
    ${await outputOf('bash')}
    COMP_WORDS=(sluice jobs "${word}"); COMP_CWORD=2; _sluice; echo "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['--norc', '-c', line], { encoding: 'utf8' }).trim();
  };
  expect(await complete('re')).toBe('retry rejects');
  // Options are completed only after a dash. Otherwise, the shell could not complete file names,
  // which some commands need.
  expect(await complete('')).toBe('retry rejects list');
  expect(await complete('-')).toBe('--help');
  expect(await outputOf('zsh')).toContain('bashcompinit');
});
