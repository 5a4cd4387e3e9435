import { createTerminal } from '../../../src/cli/terminal.ts';
import { createProgram } from '../../../src/processes/program.ts';
import type { TestSystem } from './system.ts';

/** Runs the command in this process. Returns its output, or throws its error. */
export async function runCommand(
  { variables }: Pick<TestSystem, 'variables'>,
  ...args: readonly string[]
): Promise<string> {
  let printed = '';
  const terminal = {
    ...createTerminal({}),
    print: (text: string) => {
      printed += `${text}\n`;
    },
    write: async (text: string | Uint8Array) => {
      printed += Buffer.from(text as string).toString();
    },
    json: (value: unknown) => {
      printed += JSON.stringify(value);
    },
    inform: () => undefined,
  };
  const cli = { processEnv: variables, fromDotEnv: new Set<string>(), terminal, entry: '' };
  await (await createProgram(cli, args)).parseAsync(['node', 'sluice', ...args]);
  return printed;
}
