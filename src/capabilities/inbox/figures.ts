import { plural } from '../../base/wording.ts';
import { readFigures } from '../../postgres/pool.ts';
import type { FigureSeam, NeedOf } from '../../telemetry/seam.ts';

const needsStatement = `
  select e.environment_id as "environmentId", refused, "withRejects"
  from environments e
  cross join lateral (
    select count(*) as refused
    from inbox_files f
    where f.environment_id = e.environment_id and f.state = 'concluded' and f.outcome = 'failed'
      and f.job_id is null and f.concluded_at > now() - interval '24 hours'
  ) of_files
  cross join lateral (
    select count(*) as "withRejects"
    from loads l
    cross join lateral count_mended(l.load_id) as mended
    where l.environment_id = e.environment_id and l.status = 'completed' and l.rows_rejected > mended
      and not l.dry_run and l.origin = 'inbox' and exists (
        select 1
        from inbox_files f
        where f.environment_id = e.environment_id and f.job_id = l.job_id and not f.is_duplicate
          and f.state = 'concluded'
      )
  ) of_loads
  where $1::int is null or e.environment_id = $1`;

const verb = (count: number, one: string, many: string) => (count === 1 ? one : many);

export const figures: FigureSeam = {
  async needs(pool, id) {
    type Row = Record<'environmentId' | 'refused' | 'withRejects', number>;
    const rows = await readFigures<Row>(pool, needsStatement, [id]);
    return rows.flatMap(({ environmentId, refused, withRejects }): NeedOf[] => {
      const wereRefused = `${verb(refused, 'was', 'were')} refused in the last 24 hours`;
      const haveRejects = `${verb(withRejects, 'has', 'have')} refused records`;
      const says = (count: number, what: string) => `${plural(count, 'file')} of the inbox ${what}`;
      return [
        { environmentId, kind: 'inbox_files_refused', count: refused, says: says(refused, wereRefused) },
        {
          environmentId,
          kind: 'inbox_files_with_rejects',
          count: withRejects,
          says: says(withRejects, haveRejects),
        },
      ];
    });
  },
};
