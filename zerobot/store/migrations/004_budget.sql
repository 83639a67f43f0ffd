-- Model calls that are under way while a spending limit is set. A row becomes one of model_calls when its call is recorded;
-- one that a crash has left becomes one at the next start.
CREATE TABLE reservations (
    id              TEXT PRIMARY KEY,
    turn_id         TEXT NOT NULL,          -- empty: the call belongs to no turn
    conversation_id INTEGER NOT NULL,
    channel         TEXT NOT NULL,
    asker           TEXT NOT NULL,
    model           TEXT NOT NULL,          -- PROVIDER/MODEL
    purpose         TEXT NOT NULL,
    amount          INTEGER NOT NULL,       -- what the call may cost at most, in millionths of a USD
    at              TEXT NOT NULL
) WITHOUT ROWID;

-- What counts as spent for a call of which nobody knows what it took, in millionths of a USD: what was reserved for it.
ALTER TABLE model_calls ADD COLUMN held INTEGER NOT NULL DEFAULT 0;

-- What a person has spent today.
CREATE INDEX model_calls_asker ON model_calls (asker, at);
