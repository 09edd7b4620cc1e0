-- Loses what is seen of tasks and the decompositions that worked; tasks that are open go on as turns of a conversation.
DROP TABLE task_templates;
DROP TABLE task_states;
DROP INDEX turns_of_user_tasks;
ALTER TABLE turns DROP COLUMN background;
