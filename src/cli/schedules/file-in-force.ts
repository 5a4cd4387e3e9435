import type { Config } from '../../config.ts';
import { readSchedulesFile } from '../../schedules/read-schedules-file.ts';
import type { Schedule } from '../../schedules/schedule.ts';
import { UsageError } from '../exit-codes.ts';
import { explainProblems } from '../explain-problems.ts';
import { readBytes } from '../read-bytes.ts';

/** The schedules of SCHEDULES_FILE, or of another file that is named. @throws UsageError */
export async function readFileInForce(
  config: Config,
  named: string | undefined,
): Promise<readonly Schedule[]> {
  const file = named ?? config.schedulesFile;
  if (file === null)
    throw new UsageError('There is no schedules file: set SCHEDULES_FILE, or name one with --file.');
  const reading = readSchedulesFile(await readBytes(file));
  if (reading.value !== null) return reading.value;
  throw new UsageError(explainProblems(file, reading, 'nothing was done'));
}
