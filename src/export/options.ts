import { expressionBuilder } from 'kysely';
import { type TSchema, Type } from 'typebox';
import { FinalFailure, type Problem } from '../base/errors.ts';
import { compileSchema } from '../base/validation.ts';
import type { ExportRequest } from '../domain/export.ts';
import { optionsByName } from '../domain/option-table.ts';
import type { Database } from '../postgres/database.ts';
import type { DB } from '../postgres/schema.ts';
import type { Filter, SegmentTest } from './filter.ts';
import { exportRequest } from './request-schema.ts';
import type { ExportOption, ExportSeam } from './seam.ts';
import { excludedSegments, segmentOption } from './segments.ts';

const coreOptions: ExportSeam = { options: { segment_id: segmentOption } };

const eb = expressionBuilder<DB>();

type OptionValues = ExportRequest['options'];

/** All options that select users, also of capabilities, and the schema of requests. */
export class ExportOptions {
  readonly schema: ReturnType<typeof exportRequest>;
  readonly #options: ReadonlyMap<string, ExportOption>;
  #findProblems: ((body: unknown) => Problem[]) | undefined;

  constructor(seams: readonly ExportSeam[]) {
    this.#options = optionsByName([coreOptions, ...seams]);
    this.schema = exportRequest(this.#schemas());
  }

  findProblems(body: unknown): Problem[] {
    // Most commands do not read a request.
    this.#findProblems ??= compileSchema(this.schema);
    return this.#findProblems(body);
  }

  get entries(): readonly (readonly [name: string, option: ExportOption])[] {
    return [...this.#options];
  }

  read(fields: Readonly<Record<string, unknown>>, problems: Problem[]): OptionValues {
    const values = this.entries.flatMap(([name, option]) => {
      const given = fields[name];
      const value = given === undefined ? null : option.read(given, problems);
      return value === null ? [] : [[name, value] as const];
    });
    return Object.fromEntries(values);
  }

  async findUnknown(db: Database, environmentId: number, values: OptionValues): Promise<readonly Problem[]> {
    const problems: Problem[] = [];
    for (const [name, value] of Object.entries(values)) {
      problems.push(...((await this.#option(name).findProblems?.(db, environmentId, value)) ?? []));
    }
    return problems;
  }

  /**
   * Periods such as the last seven days end at `now`. @throws FinalFailure if a segment or an
   * option no longer exists
   */
  async selectUsers(
    db: Database,
    environmentId: number,
    { options, exclusions }: Pick<ExportRequest, 'options' | 'exclusions'>,
    now = new Date(),
  ): Promise<Pick<Filter, 'segment' | 'excludedSegments'>> {
    const scope = { environmentId, now };
    const tests: SegmentTest[] = [];
    for (const [name, value] of Object.entries(options)) {
      tests.push(await this.#option(name).select(db, scope, value));
    }
    return {
      segment: tests.length === 0 ? null : (user) => eb.and(tests.map((isIn) => isIn(user))),
      excludedSegments: await excludedSegments(db, scope, exclusions),
    };
  }

  /** Ignoring an option that this build lacks would export more than was requested. */
  #option(name: string): ExportOption {
    const option = this.#options.get(name);
    if (option !== undefined) return option;
    throw new FinalFailure('invalid_field', `This build of sluice has no option ${name}`);
  }

  #schemas(): Readonly<Record<never, TSchema>> {
    return Object.fromEntries(this.entries.map(([name, { schema }]) => [name, Type.Optional(schema)]));
  }
}
