/** `sluice completion`: scripts by which shells complete commands and options. They are derived from the commands themselves. */
import type { Command, Option } from 'commander';
import { defineCommand, required } from './define-command.ts';
import { UsageError } from './errors.ts';

const shells = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

export const completion = defineCommand({
  name: 'completion',
  summary: 'a script that completes commands and options in bash, zsh or fish',
  description:
    'Prints a script for the shell. Load it in each new shell, or save it where the shell looks for completions.',
  argument: required('<shell>', 'bash, zsh or fish'),
  examples: [
    'source <(sluice completion bash)   # in ~/.bashrc; zsh: in ~/.zshrc',
    'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  ],
  run: async ({ command, terminal, argument }) => {
    if (!Object.hasOwn(shells, argument)) throw new UsageError('The shells are bash, zsh and fish.');
    const program = command.parent ?? command;
    await terminal.write(shells[argument as keyof typeof shells](listPlaces(program)));
  },
});

/** A place in a command line: the words of a command, and what may follow them. */
interface Place {
  readonly words: readonly string[];
  readonly commands: readonly Command[];
  readonly options: readonly Option[];
}

function listPlaces(program: Command): Place[] {
  const placesOf = (command: Command, words: readonly string[]): Place[] => [
    { words, commands: command.commands, options: [...command.options, ...program.options] },
    ...command.commands.flatMap((each) => placesOf(each, [...words, each.name()])),
  ];
  const [root, ...others] = placesOf(program, []);
  return root === undefined ? [] : [{ ...root, options: program.options }, ...others];
}

const shown = ({ options }: Place): Option[] => options.filter((option) => !option.hidden);
const flagsOf = (option: Option): string[] =>
  [option.short, option.long].filter((flag): flag is string => flag !== undefined);

/** The file names that bash offers by default remain where a script has nothing to offer. */
function bashScript(places: readonly Place[]): string {
  const paths = places.filter(({ words }) => words.length > 0).map(({ words }) => `"${words.join(' ')}"`);
  const values = places.flatMap((place) =>
    shown(place).flatMap((option) =>
      option.argChoices === undefined
        ? []
        : [`    "${place.words.join(' ')}:${option.long}") words="${option.argChoices.join(' ')}" ;;`],
    ),
  );
  const names = places.map(({ words, commands }) => {
    const found = [...commands.map((command) => command.name()), ...(words.length === 0 ? ['help'] : [])];
    return `      "${words.join(' ')}") words="${found.join(' ')}" ;;`;
  });
  const flags = places.map(
    (place) =>
      `      "${place.words.join(' ')}") words="${[...shown(place).flatMap(flagsOf), '--help'].join(' ')}" ;;`,
  );
  return `_sluice() {
  local path="" words="" next i
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${path:+$path }\${COMP_WORDS[i]}"
    case "$next" in
      ${paths.join('|')}) path="$next" ;;
    esac
  done
  case "$path:$before" in
${values.join('\n')}
  esac
  if [[ -z "$words" && "$current" == -* ]]; then
    case "$path" in
${flags.join('\n')}
    esac
  elif [[ -z "$words" ]]; then
    case "$path" in
${names.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sluice sluice
`;
}

function zshScript(places: readonly Place[]): string {
  return `autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n${bashScript(places)}`;
}

function fishScript(places: readonly Place[]): string {
  const quote = (text: string): string => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;
  const lines = places.flatMap((place) => {
    const { words, commands } = place;
    const when =
      words.length === 0
        ? '__fish_use_subcommand'
        : words.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ');
    const begin = `complete -c sluice -n ${quote(when)}`;
    return [
      ...commands.map((command) => `${begin} -a ${command.name()} -d ${quote(command.summary())}`),
      ...shown(place).map((option) => {
        const [long, short] = [option.long?.slice(2), option.short?.slice(1)];
        const names = `${long === undefined ? '' : ` -l ${long}`}${short === undefined ? '' : ` -s ${short}`}`;
        const value = option.required ? ' -r' : '';
        const choices = option.argChoices === undefined ? '' : ` -f -a ${quote(option.argChoices.join(' '))}`;
        return `${begin}${names}${value}${choices} -d ${quote(option.description)}`;
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}
