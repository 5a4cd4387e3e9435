-- The segment of an export is one of its options.

update sluice.exports
set request = request - 'segmentId' || jsonb_build_object(
  'options',
  jsonb_strip_nulls(jsonb_build_object('segment_id', request -> 'segmentId'))
);
