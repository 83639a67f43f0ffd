-- An envelope says whether a bot wrote it. Those that wait since before were all written by people.
UPDATE inbox SET envelope = CASE
    WHEN json_valid(envelope) THEN json_insert(envelope, '$.from_bot', json('false'))
    ELSE envelope
END
WHERE envelope <> '';
