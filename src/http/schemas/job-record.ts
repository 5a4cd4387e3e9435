import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { exportItem } from '../../api/export.ts';
import { idOptions, type jobRecord } from '../../api/job.ts';
import { loadStatuses } from '../../domain/load.ts';
import { ruled, worded } from '../../validation.ts';
import { severalOf } from './answers.ts';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isJobId(text: string): boolean {
  return uuid.test(text);
}

/** The id in the path of everything that concerns one such thing. Anything but a UUID is no id of one. */
export function idParameter<const Name extends string>(name: Name, what: string) {
  const message = `there is no such ${what}`;
  const id = worded(
    ruled(Type.String(idOptions(what)), (text) => (isJobId(text) ? null : message)),
    {
      says: (value) => ({
        code: 'not_found',
        message,
        details: `${name}: ${String(value).slice(0, 100)}`,
      }),
    },
  );
  return Type.Object({ [name]: id } as Record<Name, typeof id>);
}

export const jobParameters = idParameter('job_id', 'job');

/** The id in the path, which the schema has let through, as we write it. */
export function jobIdOf(request: FastifyRequest): string {
  return (request.params as Static<typeof jobParameters>).job_id.toLowerCase();
}

/** A parameter of lists. */
export const statusParameter = (description: string) => severalOf('status', loadStatuses, description);

export type JobRecord = Static<typeof jobRecord.schema>;

export type ExportItem = Static<typeof exportItem.schema>;
