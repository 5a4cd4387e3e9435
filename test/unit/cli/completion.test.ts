import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createProgram } from '../../../src/cli/program.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';

async function scriptFor(shell: string): Promise<string> {
  let script = '';
  const write = async (text: string): Promise<void> => {
    script += text;
  };
  const terminal = { write } as unknown as Terminal;
  const program = await createProgram({ processEnv: {}, fromDotEnv: new Set(), terminal, entry: '' }, [
    'completion',
  ]);
  await program.parseAsync(['completion', shell], { from: 'user' });
  return script;
}

/** What bash offers for the last of the words, by a script that it has loaded. */
function completionsIn(script: string, words: readonly string[]): string[] {
  const line = [
    script,
    `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})`,
    `COMP_CWORD=${words.length - 1}`,
    '_sluice',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join('\n');
  const text = execFileSync('bash', ['--norc', '-c', line], { encoding: 'utf8' });
  return text.split('\n').filter((word) => word !== '');
}

test('bash completes commands, their commands, options and the values that they take', async () => {
  const script = await scriptFor('bash');
  expect(completionsIn(script, ['sluice', 'im'])).toEqual(['import']);
  expect(completionsIn(script, ['sluice', ''])).toEqual(
    expect.arrayContaining(['start', 'jobs', 'completion']),
  );
  expect(completionsIn(script, ['sluice', 'jobs', 're'])).toEqual(['retry', 'rejects']);
  expect(completionsIn(script, ['sluice', '--data-dir', 'x', 'jobs', 'list', '--st'])).toEqual(['--status']);
  expect(completionsIn(script, ['sluice', 'export', '--format', 'p'])).toEqual(['parquet']);
  expect(completionsIn(script, ['sluice', 'import', 'users.c'])).toEqual([]);
  expect(completionsIn(script, ['sluice', 'work', '--o'])).toEqual([]);
});

test('zsh and fish have scripts of the same commands', async () => {
  expect(await scriptFor('zsh')).toContain('bashcompinit');
  expect(await scriptFor('fish')).toMatch(
    /__fish_seen_subcommand_from jobs; and __fish_seen_subcommand_from list' -l status -r -f -a '/,
  );
});
