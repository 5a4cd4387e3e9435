import { readFile } from 'node:fs/promises';
import type { Config } from '../config.ts';
import { readSchedulesFile } from '../schedules/file/read-schedules-file.ts';
import { namedVariables, type Variables } from '../schedules/placeholders.ts';
import { type Finding, failed, ok, warning } from './finding.ts';

const check = 'schedules';

/** The file that the schedules are in, and the variables it names. Runs none of them. */
export async function checkSchedules(
  { schedulesFile }: Pick<Config, 'schedulesFile'>,
  variables: Variables,
): Promise<Finding[]> {
  if (schedulesFile === null) return [ok(check, 'not set: nothing runs by the clock')];
  const bytes = await readFile(schedulesFile);
  const { value, problems } = readSchedulesFile(bytes);
  if (value === null) {
    const [first] = problems;
    const where = first === undefined ? '' : `:${first.line}:${first.column}: ${first.message}`;
    const advice =
      'Mend it; `sluice schedules check` tells all that is wrong. Until then nothing starts with it.';
    return [failed(check, `${schedulesFile}${where}`, advice)];
  }
  const missing = namedVariables(bytes.toString('utf8')).filter((name) => !variables[name]);
  if (missing.length > 0) {
    const advice =
      'Set them for the workers, and for this command if it is to see them; runs that need them fail.';
    return [warning(check, `not set here: ${missing.slice(0, 10).join(', ')}`, advice)];
  }
  return [ok(check, `${value.length} in ${schedulesFile}`)];
}
