import { inputError } from '../base/errors.ts';
import { resolveMap } from '../domain/column-map.ts';
import type { LoadEntity } from '../domain/entity.ts';
import type { LoadOptions } from '../domain/load.ts';
import { writeWhole } from '../files/file-store.ts';
import type { AcceptRequest, LoadRequest } from './accept-request.ts';
import type { LoadContext } from './context.ts';
import { findForeign, foreignProblem } from './foreign-file.ts';
import { planFile, requireRecord } from './map/column-plan.ts';
import type { ReceivedFile } from './receive/received-file.ts';
import { requireRewriter, rewriteFile } from './receive/rewrite.ts';
import { receivingStore } from './received.ts';

/* Checks whether the options of a load fit its file, before the load is accepted. */

/** Gives the names in `map` the spelling of the file's header. */
export function withColumnNames(request: LoadRequest): LoadRequest {
  const { received, options } = request;
  if (received.header === null) return request;
  const hasHeader = received.readAs.csv?.headerLine !== null;
  const map = resolveMap(options.map, received.header.columns, hasHeader);
  return { ...request, options: { ...options, map } };
}

/** If a preset is set, rewrites the file. @throws InputError */
export async function rewriteForeign(context: LoadContext, request: LoadRequest): Promise<LoadRequest> {
  const { received, options } = request;
  const { preset, source } = options;
  if (preset === null) return request;
  const rewriter = requireRewriter(context.rewriter);
  requirePresetFits(options);
  rewriter.requireFitting(options);
  requireColumns(options, received);
  refuseForeign(context, request);
  const store = receivingStore(context);
  const writer = await store.create();
  const lines = rewriter.rewrite(store, received, preset, source);
  const rewritten = await rewriteFile(received, lines, (each) => writeWhole(writer, each));
  await store.remove(received.ref);
  return { ...request, received: rewritten };
}

/** @throws InputError if events would be loaded as profiles, or if another preset is needed */
export function refuseForeign({ rewriter }: LoadContext, request: LoadRequest): void {
  const { received, options, beginning } = request;
  const foreign = findForeign(beginning, received.header !== null, options, rewriter?.recognise ?? null);
  if (foreign !== null) throw foreignProblem(foreign, beginning.names);
}

/**
 * Returns the kind of the load's records. For CSV, the header determines the kind.
 * @throws InputError
 */
export function resolveEntity({ rewriter }: LoadContext, { received, options }: AcceptRequest): LoadEntity {
  rewriter?.requireFitting(options);
  if (options.preset !== null) return options.entity;
  requireColumns(options, received);
  if (received.object !== null) requireRecord(received.object, options.map);
  if (received.header === null) return options.entity;
  return planFile(received.header, options.map, options.entity, rewriter?.recognise).entity;
}

function requireColumns({ guard }: LoadOptions, { header, readAs }: ReceivedFile): void {
  if (header !== null || guard === null || guard === 'usual' || guard.columns === undefined) return;
  const message = `guard can compare columns of CSV and workbooks only, and the file was read as ${readAs.format}. Leave columns out`;
  throw inputError('invalid_field', message, 'guard');
}

function requirePresetFits({ map, source }: LoadOptions): void {
  if (source.types !== undefined)
    throw inputError('invalid_field', 'types and preset exclude each other', 'types');
  if (Object.keys(map).length === 0) return;
  throw inputError('invalid_field', 'map and preset exclude each other', 'preset');
}
