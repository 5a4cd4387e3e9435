/** The shell script of `sluice completion` asks the program for the words that can follow. */
import type { Command } from 'commander';
import { defineCommand, hidden, optional, text } from './define-command.ts';
import { UsageError } from './errors.ts';

const bash = `_sluice() {
  local current="\${COMP_WORDS[COMP_CWORD]}" words
  words="$(sluice completion --words "\${COMP_WORDS[*]:1:COMP_CWORD-1}" 2>/dev/null)"
  [[ "$current" == -* ]] || words="$(grep -v '^-' <<< "$words")"
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sluice sluice
`;

const scripts: Readonly<Record<string, string>> = {
  bash,
  zsh: `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bash}`,
  fish: `complete -c sluice -a '(sluice completion --words (commandline -opc | tail -n +2 | string join " ") 2>/dev/null)'\n`,
};

export const completion = defineCommand({
  name: 'completion',
  summary: 'a script that completes commands and options in bash, zsh or fish',
  description:
    'Prints a script for the shell. Load it in each new shell, or save it where the shell looks for completions.',
  argument: optional('[shell]', 'bash, zsh or fish'),
  options: { words: hidden(text('--words <text>', 'list what may follow these words')) },
  examples: [
    'source <(sluice completion bash)   # in ~/.bashrc; zsh: in ~/.zshrc',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ],
  run: async ({ command, terminal, argument, flags }) => {
    const program = command.parent ?? command;
    if (flags.words !== undefined) return terminal.write(`${listNext(program, flags.words).join('\n')}\n`);
    const script = scripts[argument ?? ''];
    if (script === undefined) throw new UsageError('The shells are bash, zsh and fish.');
    await terminal.write(script);
  },
});

function listNext(program: Command, line: string): string[] {
  const words = line.split(' ').filter((word) => word !== '');
  let command = program;
  for (const word of words) command = command.commands.find((each) => each.name() === word) ?? command;
  const options = [...new Set([...command.options, ...program.options])].filter((option) => !option.hidden);
  const typed = words.at(-1) ?? '';
  const last = options.find(({ short, long }) => [short, long].includes(typed));
  if (last?.required === true) return last.argChoices ?? [];
  return [
    ...command.commands.map((each) => each.name()),
    ...options.flatMap(({ short, long }) => [short, long].filter((flag) => flag !== undefined)),
    '--help',
  ];
}
