import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { pageFiles, root } from '../../site/pages.ts';

/** Returns the commands and flags that the documentation mentions but the program lacks. */
export function wrongCommands(program: Command): string[] {
  const pages = ['README.md', ...pageFiles.filter((page) => !page.startsWith('docs/decisions/'))];
  return pages.flatMap((page) =>
    commandsOf(readFileSync(join(root, page), 'utf8')).flatMap((line) => {
      const problem = problemOf(program, line.split(/\s+/));
      return problem === null ? [] : [`${page}: sluice ${line}: ${problem}`];
    }),
  );
}

/**
 * Returns the words that follow `sluice` in code blocks and inline code. Assignments of environment
 * variables or `npx` may precede `sluice`.
 */
function commandsOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].flatMap(([, language = '', block = '']) =>
    ['', 'sh'].includes(language) ? block.replaceAll('\\\n', ' ').split('\n') : [],
  );
  const inline = [...text.replaceAll(/^```.*?^```$/gms, '').matchAll(/`([^`]+)`/g)].map(([, code = '']) =>
    code.replaceAll(/\s+/g, ' '),
  );
  const command = /(?:^|[$|&(] ?)(?:[A-Z_]+=\S+ )*(?:npx )?sluice (?!listens)([a-z-][^|&;#)>]*)/g;
  return [...blocks, ...inline].flatMap((line) =>
    [...line.matchAll(command)].map(([, words = '']) => words.trim()),
  );
}

function problemOf(program: Command, words: readonly string[]): string | null {
  let command = program;
  for (const [at, word] of words.entries()) {
    // `sluice psql` accepts any flags, because it passes them to psql.
    if (command.name() === 'psql') return null;
    if (word.startsWith('-') && word !== '-') {
      const flag = word.replace(/=.*/s, '');
      if (!isFlag(command, flag)) return `there is no ${flag}`;
      continue;
    }
    const inner = command.commands.find((each) => each.name() === word);
    if (inner !== undefined) command = inner;
    else if (at === 0) return 'there is no such command';
  }
  return null;
}

function isFlag(command: Command | null, flag: string): boolean {
  if (command === null) return ['--help', '-h'].includes(flag);
  return (
    command.options.some(({ long, short }) => long === flag || short === flag) || isFlag(command.parent, flag)
  );
}
