import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createProgram } from '../../../src/cli/program.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';

async function printed(...words: string[]): Promise<string> {
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
  ['export --format', ['csv', 'ndjson', 'parquet', 'avro']],
])('after "sluice %s" stand its commands, options or values', async (line, words) => {
  expect((await printed('--words', line)).split('\n')).toEqual(expect.arrayContaining(words));
});

test('options between processes are not offered', async () => {
  expect(await printed('--words', 'work')).not.toContain('--only');
});

test('bash offers the words that begin as what was typed', async () => {
  const line = `sluice() { [[ "$*" == "completion --words jobs" ]] && echo "retry rejects list"; }
    ${await printed('bash')}
    COMP_WORDS=(sluice jobs re); COMP_CWORD=2; _sluice; echo "\${COMPREPLY[@]}"`;
  expect(execFileSync('bash', ['--norc', '-c', line], { encoding: 'utf8' })).toBe('retry rejects\n');
  expect(await printed('zsh')).toContain('bashcompinit');
});
