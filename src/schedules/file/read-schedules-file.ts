import { type FileReading, readOperatorFile } from '../../operator-file/read-operator-file.ts';
import type { Schedule } from '../schedule.ts';
import { schedulesField } from './schedules-field.ts';

/** Reads a schedules file, YAML or JSON, and finds everything that is wrong with it at once. */
export function readSchedulesFile(bytes: Uint8Array): FileReading<readonly Schedule[]> {
  return readOperatorFile(bytes, schedulesField, 'without schedules it is written `schedules: []`');
}

/** The JSON Schema of a schedules file, for editors: docs/schemas/schedules.schema.json. */
export function schedulesSchema(): object {
  const { properties, ...rest } = schedulesField.schema;
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://sluice.invalid/schemas/schedules.schema.json',
    title: 'Schedules of sluice',
    ...rest,
    properties: { $schema: { type: 'string' }, ...(properties as object) },
  };
}
